//! Reads pictures and writes them anew: turned upright, no larger than models look at, and without metadata such as the
//! place where a photo was taken. Pure.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage};
use kai_llm::Media;

use super::FileKind;

/// The longest side that is kept, in pixels. Models scale down what is larger.
pub const LONGEST_SIDE: u32 = 1568;
/// The largest picture that is read, in pixels: more than phones take. One file of a few bytes can claim any size.
const MOST_PIXELS: u64 = 64_000_000;
/// The longest side that is read.
const LARGEST_SIDE: u32 = 20_000;
/// The most memory that reading a picture may take, in bytes.
const MEMORY: u64 = 400 << 20;
/// A picture that needs more bytes than this as PNG is kept as JPEG.
const LARGEST_PNG: usize = 1 << 20;
/// The quality of JPEG, in percent.
const QUALITY: u8 = 85;

/// A picture as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    pub media: Media,
    pub width: u32,
    pub height: u32,
    pub bytes: Vec<u8>,
}

impl Clean {
    pub(super) fn kind(&self) -> FileKind {
        FileKind::Picture { media: self.media, width: self.width, height: self.height }
    }
}

/// Why a picture cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    Broken,
    /// It has too many pixels, or needs too much memory.
    TooMuch,
}

/// The format of a picture by its first bytes, if it is one that Kai reads. The name says nothing.
pub(super) fn format(bytes: &[u8]) -> Option<ImageFormat> {
    let known =
        |format: &ImageFormat| matches!(format, ImageFormat::Jpeg | ImageFormat::Png | ImageFormat::WebP);
    image::guess_format(bytes).ok().filter(known)
}

/// Reads a picture and writes it anew.
pub(super) fn read(format: ImageFormat, bytes: &[u8]) -> Result<Clean, Flaw> {
    let (picture, orientation) = decoded(format, bytes)?;
    let mut picture = smaller(picture);
    picture.apply_orientation(orientation);
    let (width, height) = (picture.width(), picture.height());
    let (media, bytes) = encoded(&picture, format)?;
    Ok(Clean { media, width, height, bytes })
}

fn decoded(format: ImageFormat, bytes: &[u8]) -> Result<(DynamicImage, Orientation), Flaw> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(LARGEST_SIDE), Some(LARGEST_SIDE));
    limits.max_alloc = Some(MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| flaw(&error))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS || decoder.total_bytes() > MEMORY {
        return Err(Flaw::TooMuch);
    }
    // A picture whose orientation cannot be read is taken as it is.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder).map_err(|error| flaw(&error))?;
    Ok((picture, orientation))
}

fn flaw(error: &ImageError) -> Flaw {
    match error {
        ImageError::Limits(_) => Flaw::TooMuch,
        ImageError::Decoding(_)
        | ImageError::Encoding(_)
        | ImageError::Parameter(_)
        | ImageError::Unsupported(_)
        | ImageError::IoError(_) => Flaw::Broken,
    }
}

/// Scales a picture down to the longest side that is kept. What is much larger is first averaged, which needs little
/// memory.
fn smaller(picture: DynamicImage) -> DynamicImage {
    let longest = picture.width().max(picture.height());
    let twice = LONGEST_SIDE * 2;
    let picture = if longest > twice { picture.thumbnail(twice, twice) } else { picture };
    if longest > LONGEST_SIDE {
        picture.resize(LONGEST_SIDE, LONGEST_SIDE, FilterType::Lanczos3)
    } else {
        picture
    }
}

/// Photos stay JPEG. Drawings and screenshots become PNG, which keeps letters sharp, unless that takes too many bytes.
fn encoded(picture: &DynamicImage, from: ImageFormat) -> Result<(Media, Vec<u8>), Flaw> {
    if from != ImageFormat::Jpeg {
        let png = png(picture)?;
        if png.len() <= LARGEST_PNG {
            return Ok((Media::Png, png));
        }
    }
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    on_white(picture).write_with_encoder(encoder).map_err(|_| Flaw::Broken)?;
    Ok((Media::Jpeg, bytes))
}

fn png(picture: &DynamicImage) -> Result<Vec<u8>, Flaw> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, PngFilter::Adaptive);
    let written = if picture.color().has_alpha() {
        picture.to_rgba8().write_with_encoder(encoder)
    } else {
        picture.to_rgb8().write_with_encoder(encoder)
    };
    written.map_err(|_| Flaw::Broken)?;
    Ok(bytes)
}

/// JPEG has no transparency, so what is behind the picture becomes white.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let seen = picture.to_rgba8();
    RgbImage::from_fn(seen.width(), seen.height(), |x, y| {
        let [red, green, blue, alpha] = seen.get_pixel(x, y).0;
        let over = |colour: u8| {
            let mixed = u16::from(colour) * u16::from(alpha) + 255 * (255 - u16::from(alpha));
            u8::try_from(mixed / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([over(red), over(green), over(blue)])
    })
}

/// Format and size of a picture as Kai writes it.
pub(super) fn header(bytes: &[u8]) -> Option<(Media, u32, u32)> {
    let format = format(bytes)?;
    let media = match format {
        ImageFormat::Jpeg => Media::Jpeg,
        ImageFormat::Png => Media::Png,
        _ => return None,
    };
    let (width, height) = ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().ok()?;
    (width.max(height) <= LONGEST_SIDE).then_some((media, width, height))
}

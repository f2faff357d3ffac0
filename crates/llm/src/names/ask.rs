//! Asks name servers: a datagram first, TCP for what does not fit into one, the next server if one fails.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::files::Servers;
use super::message::{Answer, Family, Name, Question, read};

/// No server sends a longer datagram unless it was told that it may.
const DATAGRAM: usize = 4096;
/// How long the addresses of one family wait for those of the other. Some servers never answer about IPv6.
const GRACE: Duration = Duration::from_secs(1);

/// No server answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoAnswer;

type Found = Result<Vec<IpAddr>, NoAnswer>;

/// The addresses of a name, of both families, asked for at once. Empty if there are none.
pub(super) async fn addresses(servers: &Servers, name: &Name) -> Found {
    let (mut four, mut six) =
        (pin!(family(servers, name, Family::V4)), pin!(family(servers, name, Family::V6)));
    let (four, six) = tokio::select! {
        four = &mut four => { let six = other(&four, six).await; (four, six) }
        six = &mut six => (other(&six, four).await, six),
    };
    let (four, six) = match (four, six) {
        (Ok(four), Ok(six)) => (four, six),
        (Ok(one), Err(NoAnswer)) | (Err(NoAnswer), Ok(one)) if !one.is_empty() => return Ok(one),
        _ => return Err(NoAnswer),
    };
    Ok(ordered(four, six, leads_somewhere))
}

/// All addresses, with those first that connections should try first.
pub(super) fn ordered(
    four: Vec<IpAddr>,
    six: Vec<IpAddr>,
    leads: impl FnOnce(IpAddr) -> bool,
) -> Vec<IpAddr> {
    let six_first = six.first().is_some_and(|address| leads(*address));
    if six_first { [six, four] } else { [four, six] }.concat()
}

/// The rest of the answer: at once if the first half has addresses, otherwise whenever it comes.
pub(super) async fn other(first: &Found, second: impl Future<Output = Found>) -> Found {
    if first.as_ref().is_ok_and(|addresses| !addresses.is_empty()) {
        return timeout(GRACE, second).await.unwrap_or(Err(NoAnswer));
    }
    second.await
}

/// Whether this machine has a way to such an address. Connecting a datagram socket sends nothing.
fn leads_somewhere(address: IpAddr) -> bool {
    let socket = std::net::UdpSocket::bind((unspecified(address), 0));
    socket.is_ok_and(|socket| socket.connect((address, 443)).is_ok())
}

async fn family(servers: &Servers, name: &Name, family: Family) -> Found {
    for _ in 0..servers.rounds {
        for server in &servers.addresses {
            let Ok(number) = getrandom::u32() else { return Err(NoAnswer) };
            let question = Question { number: (number & 0xffff) as u16, name, family };
            let answer = timeout(servers.patience, ask(*server, &question)).await;
            if let Ok(Ok(Answer::Addresses(found))) = answer {
                return Ok(found);
            }
        }
    }
    Err(NoAnswer)
}

async fn ask(server: SocketAddr, question: &Question<'_>) -> io::Result<Answer> {
    match by_datagram(server, question).await? {
        Answer::Truncated => by_stream(server, question).await,
        answer => Ok(answer),
    }
}

/// Asks from a port of its own, which the system chooses at random. The socket is connected, so nothing else than what
/// comes from the server is heard, and whatever is no answer to the question is ignored: it may be somebody's guess.
async fn by_datagram(server: SocketAddr, question: &Question<'_>) -> io::Result<Answer> {
    let socket = UdpSocket::bind((unspecified(server.ip()), 0)).await?;
    socket.connect(server).await?;
    socket.send(&question.bytes()).await?;
    let mut datagram = vec![0; DATAGRAM];
    loop {
        let length = socket.recv(&mut datagram).await?;
        if let Some(answer) = read(question, &datagram[..length]) {
            return Ok(answer);
        }
    }
}

async fn by_stream(server: SocketAddr, question: &Question<'_>) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(server).await?;
    let asked = question.bytes();
    let length = u16::try_from(asked.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &asked].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(read(question, &answer).filter(|answer| *answer != Answer::Truncated).unwrap_or(Answer::Failed))
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

-- The beginning of the message that is answered, so that the person sees what the draft answers. It goes when the draft goes.
ALTER TABLE drafts ADD COLUMN quoted TEXT;

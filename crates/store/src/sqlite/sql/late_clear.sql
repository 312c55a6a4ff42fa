UPDATE late SET body = zeroblob(length(body)) WHERE execution = ?1 AND body <> zeroblob(length(body))

UPDATE late SET body = decode(repeat('00', length(body)), 'hex') WHERE execution = $1 AND body <> decode(repeat('00', length(body)), 'hex')
RETURNING 1

UPDATE late SET body = decode(repeat('00', length(body)), 'hex') WHERE execution = $1

SELECT ifnull(max(number), 0) FROM frames

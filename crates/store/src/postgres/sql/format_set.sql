UPDATE mainspring_format SET format = $1

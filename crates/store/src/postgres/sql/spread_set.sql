UPDATE spread SET partitions = $1

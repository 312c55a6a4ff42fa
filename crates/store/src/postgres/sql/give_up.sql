UPDATE partitions SET holder = NULL
FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[])) AS given (partition, epoch)
WHERE partitions.partition = given.partition AND partitions.epoch = given.epoch AND holder = $3

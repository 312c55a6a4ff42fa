SELECT execution, partition, sequence, hash, ended FROM heads
WHERE execution = ANY ($1) ORDER BY execution FOR UPDATE

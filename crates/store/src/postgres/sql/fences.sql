-- In order, so that no two wait for each other. Whoever wants one of these partitions waits until the transaction ends.
SELECT partition, epoch FROM partitions WHERE partition = ANY ($1) ORDER BY partition FOR SHARE

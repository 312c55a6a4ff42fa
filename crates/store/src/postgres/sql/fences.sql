-- Locked in key order against deadlocks. Nodes that acquire one of these partitions wait until the transaction ends.
SELECT partition, epoch FROM partitions WHERE partition = ANY ($1) ORDER BY partition FOR SHARE

-- Locks the number of partitions against changes until the transaction ends.
SELECT partitions FROM spread FOR SHARE

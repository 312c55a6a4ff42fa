-- Holds the number of partitions still until the transaction ends.
SELECT partitions FROM spread FOR SHARE

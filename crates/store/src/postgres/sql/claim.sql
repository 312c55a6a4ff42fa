INSERT INTO partitions (partition, epoch, holder) VALUES ($1, 1, $2)
ON CONFLICT (partition) DO UPDATE SET epoch = partitions.epoch + 1, holder = excluded.holder
RETURNING epoch

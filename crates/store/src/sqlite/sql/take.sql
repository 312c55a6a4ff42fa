-- ?3 is the store's clock. A partition is free if its holder is not a living node.
INSERT INTO partitions (partition, epoch, holder) VALUES (?1, 1, ?2)
ON CONFLICT (partition) DO UPDATE SET epoch = epoch + 1, holder = ?2
WHERE holder IS NULL OR NOT EXISTS (SELECT 1 FROM nodes WHERE name = holder AND alive_until > ?3)
RETURNING epoch

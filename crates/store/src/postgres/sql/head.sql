SELECT sequence, hash, seal, partition, wake_at, ended, quarantined FROM heads WHERE execution = $1

UPDATE remote_attempts SET to_stop = true WHERE execution = $1 AND step_key = $2 AND number = $3

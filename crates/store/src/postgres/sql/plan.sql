SELECT bytes FROM plans WHERE hash = $1

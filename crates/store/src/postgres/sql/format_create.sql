CREATE TABLE IF NOT EXISTS mainspring_format (
    one     BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    program TEXT NOT NULL,
    format  BIGINT NOT NULL
);
INSERT INTO mainspring_format (one, program, format) VALUES (1, 'mainspring', 0) ON CONFLICT (one) DO NOTHING;

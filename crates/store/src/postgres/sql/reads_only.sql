-- Every connection of somebody who only looks, behind the words of all: the server itself refuses what would write.
SET default_transaction_read_only = on;

-- The table that the poller reads. The path in SHOP_DSN is relative to the folder that the host runs, so for a first try
-- sqlite3 dist/shop.db < shop.sql creates the database, after the app is staged. The cursor is a number that grows with every row.
-- The column delivery contains the engine's input.
CREATE TABLE deliveries (id INTEGER PRIMARY KEY AUTOINCREMENT, delivery TEXT NOT NULL);
INSERT INTO deliveries (delivery) VALUES ('{"id": 1, "article": "chair", "pieces": 12}'), ('{"id": 2, "article": "table", "pieces": 3}');

"""A small data warehouse: eight tables of parts, suppliers, customers and orders, and their rows.

The tables, their relations and their relative sizes are those of TPC-D and TPC-H (at scale factor 1 10,000 suppliers,
200,000 parts, 800,000 offers, 150,000 customers, 1,500,000 orders, about 6,000,000 items). Names, columns and values
are our own, and so is this generator: results are not those of TPC.

Every row follows from its table and number alone, so that each recording fills the same database.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator

FIRST_DAY = dt.date(1992, 1, 1)
LAST_ORDER_DAYS = 2405
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-LOW", "5-NONE")
SHIP_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
FINISHES = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
CLASSES = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
COLOURS = (
    "almond",
    "azure",
    "coral",
    "forest",
    "green",
    "ivory",
    "navy",
    "orchid",
    "plum",
    "sienna",
)
CONTAINERS = ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
WORDS = (
    "account",
    "bold",
    "carefully",
    "deposit",
    "express",
    "final",
    "ironic",
    "packages",
    "quick",
    "slyly",
)
OFFERS_PER_PART = 4

# Tables live in one directory and their indices in another.
SCHEMA = """
create table region (region_key int, name text, remark text) tablespace tables;
create table nation (nation_key int, name text, region_key int, remark text) tablespace tables;
create table supplier (supplier_key int, name text, address text, nation_key int, phone text, balance numeric(12,2),
    remark text) tablespace tables;
create table part (part_key int, name text, maker text, brand text, kind text, size int, container text,
    price numeric(12,2), remark text) tablespace tables;
create table offer (part_key int, supplier_key int, available int, cost numeric(12,2), remark text) tablespace tables;
create table customer (customer_key int, name text, address text, nation_key int, phone text, balance numeric(12,2),
    segment text, remark text) tablespace tables;
create table purchase (order_key int, customer_key int, status char(1), total numeric(12,2), ordered date,
    priority text, clerk text, remark text) tablespace tables;
create table item (order_key int, line int, part_key int, supplier_key int, quantity int, price numeric(12,2),
    discount numeric(4,2), tax numeric(4,2), returned char(1), status char(1), shipped date, committed date,
    received date, instruction text, ship_mode text, remark text) tablespace tables;
"""

# One primary index a table, and secondary ones on what the queries look rows up by.
INDICES = """
create unique index region_primary on region (region_key) tablespace indices;
create unique index nation_primary on nation (nation_key) tablespace indices;
create unique index supplier_primary on supplier (supplier_key) tablespace indices;
create index supplier_nation on supplier (nation_key) tablespace indices;
create unique index part_primary on part (part_key) tablespace indices;
create index part_brand on part (brand, container) tablespace indices;
create unique index offer_primary on offer (part_key, supplier_key) tablespace indices;
create index offer_supplier on offer (supplier_key) tablespace indices;
create unique index customer_primary on customer (customer_key) tablespace indices;
create index customer_nation on customer (nation_key) tablespace indices;
create unique index purchase_primary on purchase (order_key) tablespace indices;
create index purchase_customer on purchase (customer_key) tablespace indices;
create index purchase_ordered on purchase (ordered) tablespace indices;
create unique index item_primary on item (order_key, line) tablespace indices;
create index item_part on item (part_key, supplier_key) tablespace indices;
create index item_shipped on item (shipped) tablespace indices;
"""

Row = tuple[object, ...]


def draw(table: str, number: int) -> random.Random:
    """The random numbers of one row."""
    return random.Random(f"{table}/{number}")


def remark(numbers: random.Random, words: int) -> str:
    """A comment of so many words."""
    return " ".join(numbers.choices(WORDS, k=words))


def money(numbers: random.Random, low: int, high: int) -> str:
    """An amount from `low` to `high` in whole units and hundredths."""
    hundredths = numbers.randint(low * 100, high * 100)
    sign = "-" if hundredths < 0 else ""
    return f"{sign}{abs(hundredths) // 100}.{abs(hundredths) % 100:02d}"


class Warehouse:
    """The rows of the eight tables at a scale factor.

    Attributes:
        suppliers, parts, customers, orders: how many of each.
    """

    def __init__(self, scale: float) -> None:
        self.suppliers = round(10_000 * scale)
        self.parts = round(200_000 * scale)
        self.customers = round(150_000 * scale)
        self.orders = round(1_500_000 * scale)

    def tables(self) -> dict[str, Iterator[Row]]:
        """The rows of every table, in the order in which they are loaded."""
        return {
            "region": (
                (key, name, remark(draw("region", key), 8)) for key, name in enumerate(REGIONS)
            ),
            "nation": (
                (region * 5 + place, name, region, remark(draw("nation", region * 5 + place), 8))
                for region, names in enumerate(NATIONS)
                for place, name in enumerate(names)
            ),
            "supplier": map(self.supplier, range(1, self.suppliers + 1)),
            "part": map(self.part, range(1, self.parts + 1)),
            "offer": (
                self.offer(part, place)
                for part in range(1, self.parts + 1)
                for place in range(OFFERS_PER_PART)
            ),
            "customer": map(self.customer, range(1, self.customers + 1)),
            "purchase": (self.order(number) for number in range(self.orders)),
            "item": (item for number in range(self.orders) for item in self.items(number)),
        }

    def supplier(self, key: int) -> Row:
        """A row of `supplier`."""
        numbers = draw("supplier", key)
        nation = numbers.randrange(25)
        phone = f"{nation + 10}-{numbers.randrange(10**7):07d}"
        return (
            key, f"Supplier {key:09d}", remark(numbers, 3), nation, phone, money(numbers, -999, 9999),
            remark(numbers, 9),
        )  # fmt: skip

    def part(self, key: int) -> Row:
        """A row of `part`."""
        numbers = draw("part", key)
        maker = numbers.randint(1, 5)
        kind = f"{numbers.choice(CLASSES)} {numbers.choice(FINISHES)} {numbers.choice(METALS)}"
        return (
            key, " ".join(numbers.sample(COLOURS, 5)), f"Maker {maker}", f"Brand {maker}{numbers.randint(1, 5)}",
            kind, numbers.randint(1, 50), f"{numbers.choice(('SM', 'MED', 'LG', 'JUMBO'))} {numbers.choice(CONTAINERS)}",
            money(numbers, 900, 2000), remark(numbers, 2),
        )  # fmt: skip

    def supplier_of(self, part: int, place: int) -> int:
        """Who makes the offer number `place` of `part`: spread over all suppliers, each at most once a part."""
        return (part * 7 + place * (self.suppliers // OFFERS_PER_PART)) % self.suppliers + 1

    def offer(self, part: int, place: int) -> Row:
        """A row of `offer`."""
        numbers = draw("offer", part * OFFERS_PER_PART + place)
        supplier = self.supplier_of(part, place)
        return (
            part,
            supplier,
            numbers.randint(1, 9999),
            money(numbers, 1, 1000),
            remark(numbers, 18),
        )

    def customer(self, key: int) -> Row:
        """A row of `customer`."""
        numbers = draw("customer", key)
        nation = numbers.randrange(25)
        phone = f"{nation + 10}-{numbers.randrange(10**7):07d}"
        return (
            key, f"Customer {key:09d}", remark(numbers, 3), nation, phone, money(numbers, -999, 9999),
            numbers.choice(SEGMENTS), remark(numbers, 10),
        )  # fmt: skip

    @staticmethod
    def key_of(order: int) -> int:
        """Keys of orders leave room for later ones between them: eight of each thirty-two are used."""
        return order // 8 * 32 + order % 8 + 1

    @staticmethod
    def ordered_on(order: int) -> dt.date:
        """The day of an order; orders are not numbered by their days."""
        return FIRST_DAY + dt.timedelta(days=draw("ordered", order).randint(0, LAST_ORDER_DAYS))

    def order(self, order: int) -> Row:
        """A row of `purchase`."""
        numbers = draw("order", order)
        # A third of the customers never buy.
        customer = numbers.randrange(self.customers // 3 * 2) // 2 * 3 + numbers.randint(1, 2)
        return (
            self.key_of(order), customer, numbers.choice("FOP"), money(numbers, 1000, 400_000), self.ordered_on(order),
            numbers.choice(PRIORITIES), f"Clerk {numbers.randint(1, max(1, self.orders // 1500)):09d}",
            remark(numbers, 7),
        )  # fmt: skip

    def items(self, order: int) -> Iterator[Row]:
        """The rows of `item` of an order, one to seven."""
        numbers = draw("items", order)
        ordered = self.ordered_on(order)
        for line in range(1, numbers.randint(1, 7) + 1):
            part = numbers.randint(1, self.parts)
            supplier = self.supplier_of(part, numbers.randrange(OFFERS_PER_PART))
            shipped = ordered + dt.timedelta(days=numbers.randint(1, 121))
            committed = ordered + dt.timedelta(days=numbers.randint(30, 90))
            received = shipped + dt.timedelta(days=numbers.randint(1, 30))
            yield (
                self.key_of(order), line, part, supplier, numbers.randint(1, 50), money(numbers, 900, 100_000),
                f"0.{numbers.randint(0, 10):02d}", f"0.{numbers.randint(0, 8):02d}", numbers.choice("ANR"),
                numbers.choice("FO"), shipped, committed, received, numbers.choice(("COLLECT COD", "NONE", "TAKE BACK")),
                numbers.choice(SHIP_MODES), remark(numbers, 4),
            )  # fmt: skip

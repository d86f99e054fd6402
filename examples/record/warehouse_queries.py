"""What is asked of the warehouse: seventeen questions, and the orders of a day that come and go.

The questions are in the spirit of the seventeen of TPC-D (1995: pricing summary, cheapest supplier, and so on, in its
order), in our own words over our own tables; refreshes insert and remove a thousandth of the orders, as its two update
functions do.
"""

from __future__ import annotations

# Which share of the orders a refresh inserts or removes.
REFRESH_SHARE = 0.001

REVENUE = "sum(price * (1 - discount))"

QUERIES: dict[str, str] = {
    "q01": f"""
        -- Pricing summary of nearly everything: one scan of the items.
        select returned, status, sum(quantity), sum(price), {REVENUE}, avg(quantity), avg(discount), count(*)
        from item where shipped <= date '1998-09-02' group by returned, status order by returned, status;""",
    "q02": """
        -- The cheapest supplier of a region for each part of a kind.
        select s.balance, s.name, n.name, p.part_key, p.maker, s.address, s.phone
        from part p join offer o using (part_key) join supplier s using (supplier_key) join nation n using (nation_key)
            join region r using (region_key)
        where p.size = 15 and p.kind like '%BRASS' and r.name = 'EUROPE' and o.cost = (
            select min(o2.cost) from offer o2 join supplier s2 using (supplier_key) join nation n2 using (nation_key)
                join region r2 using (region_key) where o2.part_key = p.part_key and r2.name = 'EUROPE')
        order by s.balance desc, n.name, s.name, p.part_key limit 100;""",
    "q03": f"""
        -- The most valuable orders of a segment that have not been shipped.
        select order_key, {REVENUE} as revenue, ordered
        from customer join purchase using (customer_key) join item using (order_key)
        where segment = 'BUILDING' and ordered < date '1995-03-15' and shipped > date '1995-03-15'
        group by order_key, ordered order by revenue desc, ordered limit 10;""",
    "q04": """
        -- Orders of a quarter with an item that came late, by priority.
        select priority, count(*) from purchase p
        where ordered >= date '1993-07-01' and ordered < date '1993-10-01'
            and exists (select 1 from item i where i.order_key = p.order_key and committed < received)
        group by priority order by priority;""",
    "q05": f"""
        -- Revenue of a region's suppliers from customers of their own nation.
        select n.name, {REVENUE} as revenue
        from customer c join purchase using (customer_key) join item i using (order_key)
            join supplier s on s.supplier_key = i.supplier_key and s.nation_key = c.nation_key
            join nation n on n.nation_key = s.nation_key join region r using (region_key)
        where r.name = 'ASIA' and ordered >= date '1994-01-01' and ordered < date '1995-01-01'
        group by n.name order by revenue desc;""",
    "q06": """
        -- What a year would have brought without its small discounts.
        select sum(price * discount) from item
        where shipped >= date '1994-01-01' and shipped < date '1995-01-01'
            and discount between 0.05 and 0.07 and quantity < 24;""",
    "q07": """
        -- Trade between two nations by year.
        select n1.name, n2.name, extract(year from shipped) as year, sum(i.price * (1 - discount))
        from supplier s join item i using (supplier_key) join purchase o using (order_key)
            join customer c on c.customer_key = o.customer_key
            join nation n1 on n1.nation_key = s.nation_key join nation n2 on n2.nation_key = c.nation_key
        where (n1.name, n2.name) in (('FRANCE', 'GERMANY'), ('GERMANY', 'FRANCE'))
            and shipped between date '1995-01-01' and date '1996-12-31'
        group by n1.name, n2.name, year order by n1.name, n2.name, year;""",
    "q08": """
        -- A nation's share of a region's market for a kind of part.
        select extract(year from ordered) as year,
            sum(case when n2.name = 'BRAZIL' then i.price * (1 - discount) else 0 end) / sum(i.price * (1 - discount))
        from part p join item i using (part_key) join supplier s using (supplier_key) join purchase o using (order_key)
            join customer c on c.customer_key = o.customer_key join nation n1 on n1.nation_key = c.nation_key
            join region r using (region_key) join nation n2 on n2.nation_key = s.nation_key
        where r.name = 'AMERICA' and ordered between date '1995-01-01' and date '1996-12-31'
            and kind = 'ECONOMY ANODIZED STEEL'
        group by year order by year;""",
    "q09": """
        -- Profit on parts of a colour by nation and year.
        select n.name, extract(year from ordered) as year,
            sum(i.price * (1 - discount) - o.cost * quantity) as profit
        from part p join item i using (part_key)
            join offer o on o.part_key = i.part_key and o.supplier_key = i.supplier_key
            join supplier s on s.supplier_key = i.supplier_key join purchase u using (order_key)
            join nation n using (nation_key)
        where p.name like 'green%' group by n.name, year order by n.name, year desc;""",
    "q10": f"""
        -- Customers who sent back most in a quarter.
        select c.customer_key, c.name, {REVENUE} as revenue, balance, n.name, address, phone
        from customer c join purchase using (customer_key) join item using (order_key) join nation n using (nation_key)
        where ordered >= date '1993-10-01' and ordered < date '1994-01-01' and returned = 'R'
        group by c.customer_key, c.name, balance, phone, n.name, address order by revenue desc limit 20;""",
    "q11": """
        -- The most valuable stock of a nation.
        with stock as (
            select part_key, sum(cost * available) as value
            from offer join supplier using (supplier_key) join nation n using (nation_key)
            where n.name = 'GERMANY' group by part_key)
        select part_key, value from stock where value > (select sum(value) * 0.001 from stock) order by value desc;""",
    "q12": """
        -- Whether cheap ways of shipping delay urgent orders.
        select ship_mode, sum(case when priority in ('1-URGENT', '2-HIGH') then 1 else 0 end), count(*)
        from purchase join item using (order_key)
        where ship_mode in ('MAIL', 'SHIP') and committed < received and shipped < committed
            and received >= date '1994-01-01' and received < date '1995-01-01'
        group by ship_mode order by ship_mode;""",
    "q13": f"""
        -- What one clerk sold and lost again, by year.
        select extract(year from ordered) as year, {REVENUE}
        from purchase join item using (order_key)
        where clerk = 'Clerk 000000007' and returned = 'R' group by year order by year;""",
    "q14": """
        -- The share of promoted parts in a month's revenue.
        select 100 * sum(case when kind like 'PROMO%' then i.price * (1 - discount) else 0 end)
            / sum(i.price * (1 - discount))
        from item i join part using (part_key) where shipped >= date '1995-09-01' and shipped < date '1995-10-01';""",
    "q15": f"""
        -- The best supplier of a quarter.
        with revenue as (
            select supplier_key, {REVENUE} as total from item
            where shipped >= date '1996-01-01' and shipped < date '1996-04-01' group by supplier_key)
        select supplier_key, name, address, phone, total from supplier join revenue using (supplier_key)
        where total = (select max(total) from revenue) order by supplier_key;""",
    "q16": """
        -- How many suppliers offer parts of given sizes, but for those with complaints.
        select brand, kind, size, count(distinct supplier_key) as suppliers from offer join part using (part_key)
        where brand <> 'Brand 45' and kind not like 'MEDIUM POLISHED%' and size in (49, 14, 23, 45, 19, 3, 36, 9)
            and supplier_key not in (select supplier_key from supplier where remark like '%ironic%deposit%')
        group by brand, kind, size order by suppliers desc, brand, kind, size;""",
    "q17": """
        -- What small orders of some parts bring a year.
        select sum(i.price) / 7.0 from item i join part p using (part_key)
        where brand = 'Brand 23' and container = 'MED BOX'
            and quantity < (select 0.5 * avg(i2.quantity) from item i2 where i2.part_key = p.part_key);""",
}

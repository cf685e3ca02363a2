"""Types that users name: data types, shapes, configs; and the checks of arguments."""

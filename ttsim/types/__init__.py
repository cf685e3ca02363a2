"""What users describe calls with: data types, shapes, layouts, configs, and the checks of arguments."""

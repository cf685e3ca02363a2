"""What a page shows of reports: figures put side by side and measured for pictures, which writers lay out."""

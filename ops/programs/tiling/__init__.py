"""Programs that make tiles of rows and rows of tiles: their buffers, and which of them the library takes."""

"""Programs that normalize: layer_norm and rms_norm, group_norm, batch_norm."""

"""What analyses ask of mixed precision: scalers and who keeps them, autocast contexts, types, guards."""

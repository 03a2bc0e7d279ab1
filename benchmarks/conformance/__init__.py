"""The known bugs of mixed-precision training as runnable cases, asked of several libraries alike."""

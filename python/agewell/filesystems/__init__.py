"""File systems real and simulated: aged, recorded, scored and measured."""

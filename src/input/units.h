/* Units as programs write them beside numbers. */
#ifndef PS_INPUT_UNITS_H
#define PS_INPUT_UNITS_H

/* What one unit of length is in Angstrom ("A", "nm", "pm", "um", "m" in their spellings); NAN: no unit of length. */
double ps_unit_length_A(const char *unit);
/* What one unit of angle is in mrad ("mrad", "rad", "deg"); NAN: none. */
double ps_unit_angle_mrad(const char *unit);
/* What one unit of reciprocal length is in 1/Angstrom ("A^-1", "1/nm", ...); NAN: none. */
double ps_unit_reciprocal_inv_A(const char *unit);

#endif

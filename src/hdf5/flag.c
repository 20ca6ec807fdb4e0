#include "hdf5/flag.h"

#include "hdf5/failure.h"
#include "hdf5/util.h"

static bool is_one_choice(hid_t type, hid_t space) {
    return type >= 0 && space >= 0 && H5Tget_class(type) == H5T_ENUM && H5Sget_simple_extent_npoints(space) == 1;
}

static bool read_attribute(hid_t location, const char *object, const char *name, int *value) {
    if (!ps_hdf5_exists(location, object) || H5Aexists_by_name(location, object, name, H5P_DEFAULT) <= 0) return false;
    hid_t attribute = H5Aopen_by_name(location, object, name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute), space = attribute < 0 ? -1 : H5Aget_space(attribute);
    ps_hdf5_note_lack(type >= 0 && space >= 0);
    bool good = is_one_choice(type, space) && H5Aread(attribute, H5T_NATIVE_INT, value) >= 0;
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return good;
}

static bool read_dataset(hid_t location, const char *name, int *value) {
    hid_t dataset = ps_hdf5_exists(location, name) ? H5Dopen2(location, name, H5P_DEFAULT) : -1;
    hid_t type = dataset < 0 ? -1 : H5Dget_type(dataset), space = dataset < 0 ? -1 : H5Dget_space(dataset);
    ps_hdf5_note_lack(dataset < 0 || (type >= 0 && space >= 0));
    bool good = is_one_choice(type, space) && H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0;
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (dataset >= 0) H5Dclose(dataset);
    return good;
}

bool ps_hdf5_flag(hid_t location, const char *object, const char *attribute, bool *flag) {
    double number = 0;
    int value = 0;
    bool is_number = attribute ? ps_hdf5_attribute_number(location, object, attribute, &number) : ps_hdf5_number(location, object, &number);
    bool good = is_number || (attribute ? read_attribute(location, object, attribute, &value) : read_dataset(location, object, &value));
    if (good) *flag = number != 0 || value != 0;
    return good;
}

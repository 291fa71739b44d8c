# cmake -DDIRECTORY=<of capstan-config.cmake> -DCOMPONENTS=... -P components.cmake -- fails as find_package does.
separate_arguments(COMPONENTS)
find_package(Capstan REQUIRED COMPONENTS ${COMPONENTS} PATHS ${DIRECTORY} NO_DEFAULT_PATH)

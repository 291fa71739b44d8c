# cmake -DDIRECTORY=<of capstan-config.cmake> -DCOMPONENTS=... -P components.cmake -- calls find_package.
separate_arguments(COMPONENTS)
find_package(Capstan REQUIRED COMPONENTS ${COMPONENTS} PATHS ${DIRECTORY} NO_DEFAULT_PATH)

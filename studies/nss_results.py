def write(study, output, scale, found, missing):
    pass

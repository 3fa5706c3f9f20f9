// Labels of data brought to the numbers of a model, by the names of the classes.
#pragma once

#include "galvani/data/intake.h"
#include "galvani/data/labels.h"

namespace galvani {

// Class names match if they are the same but for case, blanks and punctuation; a model's name may list several,
// separated by commas. What was done is said in a line of the log. Error(bad_input) for classes that are numbered by
// the alphabet alone and have no name that the model knows. Labels that are numbers, not matched by name, have
// needs.label_shift added; where the model's class names are the numbers 0 to classes - 1 in some order, labels without
// names are those names. REQUIRES needs.classes > 0.
void match_classes(Labelled& data, const InputNeeds& needs);

}  // namespace galvani

// Labels of data brought to the numbers of a model, by the names of the classes.
#pragma once

#include "galvani/data/intake.h"
#include "galvani/data/labels.h"

namespace galvani {

// Class names match if they are the same but for case, blanks and punctuation; a model's name may list several,
// separated by commas. What was done is said in a line of the log. Error(bad_input) for classes that are numbered by
// the alphabet alone and have no name that the model knows. REQUIRES needs.classes > 0.
void match_classes(Labelled& data, const InputNeeds& needs);

}  // namespace galvani

#include "model/torchscript/attribute_check.h"

#include <torch/script.h>

#include <algorithm>
#include <unordered_set>

#include "galvani/base/error.h"

namespace galvani::torchscript {
namespace {

using c10::IValue;
using c10::TypeKind;
using c10::TypePtr;

// A recursion: how deep values nest is bounded where the pickle is checked (pickle_check.h).
class AttributeCheck {
 public:
  explicit AttributeCheck(const std::string& label) : label_(label) {}

  void check(const c10::ivalue::Object& object) {
    if (!seen_.insert(&object).second) return;
    std::shared_ptr<c10::ClassType> type = object.type();
    if (object.slots().size() < type->numAttributes())
      bad_input("{}: is damaged: an object of {} lacks attributes", label_, printable(type->annotation_str()));
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
      const IValue& value = object.getSlot(i);
      const TypePtr& declared = type->getAttribute(i);
      if (!fits(value, declared))
        bad_input("{}: is damaged: its attribute '{}' of type {} holds another kind of value ({})", label_,
                  printable(type->getAttributeName(i)), printable(declared->annotation_str()), value.tagKind());
    }
  }

 private:
  template <class Values>
  bool all_fit(const Values& values, const TypePtr& declared) {
    return std::all_of(values.begin(), values.end(), [&](const IValue& value) { return fits(value, declared); });
  }

  bool tuple_fits(const IValue& value, const TypePtr& declared) {
    if (!value.isTuple()) return false;
    const auto& elements = value.toTupleRef().elements();
    at::ArrayRef<TypePtr> types = declared->containedTypes();
    return std::equal(elements.begin(), elements.end(), types.begin(), types.end(),
                      [&](const IValue& element, const TypePtr& type) { return fits(element, type); });
  }

  bool dict_fits(const IValue& value, const c10::DictType& declared) {
    if (!value.isGenericDict()) return false;
    auto dict = value.toGenericDict();
    return std::all_of(dict.begin(), dict.end(), [&](const auto& entry) {
      return fits(entry.key(), declared.getKeyType()) && fits(entry.value(), declared.getValueType());
    });
  }

  bool object_fits(const IValue& value, const TypePtr& declared) {
    if (!value.isObject() || !value.toObjectRef().type()->isSubtypeOf(*declared)) return false;
    check(value.toObjectRef());
    return true;
  }

  bool fits(const IValue& value, const TypePtr& declared) {
    switch (declared->kind()) {
      case TypeKind::AnyType:
        return true;
      case TypeKind::TensorType:
        return value.isTensor();
      case TypeKind::IntType:
        return value.isInt();
      case TypeKind::FloatType:
        return value.isDouble();
      case TypeKind::ComplexType:
        return value.isComplexDouble();
      case TypeKind::BoolType:
        return value.isBool();
      case TypeKind::NumberType:
        return value.isScalar();
      case TypeKind::StringType:
        return value.isString();
      case TypeKind::DeviceObjType:
        return value.isDevice();
      case TypeKind::NoneType:
        return value.isNone();
      case TypeKind::EnumType:
        return value.isEnum() && value.toEnumHolder()->type()->isSubtypeOf(*declared);
      case TypeKind::OptionalType:
        return value.isNone() || fits(value, declared->expectRef<c10::OptionalType>().getElementType());
      case TypeKind::UnionType: {
        at::ArrayRef<TypePtr> types = declared->containedTypes();
        return std::any_of(types.begin(), types.end(), [&](const TypePtr& type) { return fits(value, type); });
      }
      case TypeKind::ListType:
        return value.isList() && all_fit(value.toListRef(), declared->containedType(0));
      case TypeKind::DictType:
        return dict_fits(value, declared->expectRef<c10::DictType>());
      case TypeKind::TupleType:
        return tuple_fits(value, declared);
      case TypeKind::ClassType:
      case TypeKind::InterfaceType:
        return object_fits(value, declared);
      default:
        return false;
    }
  }

  const std::string& label_;
  std::unordered_set<const c10::ivalue::Object*> seen_;
};

}  // namespace

void check_attributes(const torch::jit::Module& module, const std::string& label) {
  AttributeCheck(label).check(*module._ivalue());
}

}  // namespace galvani::torchscript

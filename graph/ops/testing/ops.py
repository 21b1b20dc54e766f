"""Ops that only TensorFlow's tests of its front ends and its runtime have; Partita knows their signatures alone."""

from __future__ import annotations

from ..record import Facts, FactsByOp

_NAMES = """
    A Attr AttrBool AttrBoolList AttrDefault AttrEmptyListDefault AttrEnum AttrEnumList AttrFloat
    AttrListDefault AttrListMin AttrListTypeDefault AttrMin AttrPartialShape AttrPartialShapeList AttrShape
    AttrShapeList AttrTypeDefault B Binary ComplexStruct CopyOp DefaultAttrs DevicePlacementOp
    DtypeWithDefaultOp FiveFloatOutputs FloatInput FloatOutput FloatOutputStringOutput Foo1 Foo2 Foo3 FuncAttr
    FuncListAttr GetDeadline GraphDefVersion InPolymorphicTwice Int64Output IntAttr IntInput IntInputFloatInput
    IntInputIntOutput IntOutput IntOutputFloatOutput IsResourceHandleRefCounting IsTensorFloat32Enabled
    KernelLabel KernelLabelRequired ListInput ListOutput MakeWeakResourceHandle MixedStruct NInPolymorphicTwice
    NInTwice NInTwoTypeVariables NIntsIn NIntsOut NIntsOutDefault NPolymorphicIn NPolymorphicOut
    NPolymorphicOutDefault NPolymorphicRestrictIn NPolymorphicRestrictOut Namespace>TestStringOutput None Old
    OpWithDefaultAttr OpWithFutureDefaultAttr OutT OutTypeList OutTypeListRestrict Polymorphic
    PolymorphicDefaultOut PolymorphicOut RequiresOlderGraphVersion ReservedAttr ReservedInput ResourceCreateOp
    ResourceInitializedOp ResourceUsingOp Restrict Simple SimpleStruct SleepIdentityOp SleepOp StringListAttr
    StubResourceHandleOp TestAttr TestStringOutput TwoFloatInputs TwoFloatInputsFloatOutput
    TwoFloatInputsIntOutput TwoFloatOutputs TwoIntInputs TwoIntOutputs TypeList TypeListRestrict TypeListTwice
    Unary
"""

OPS: FactsByOp = dict.fromkeys(_NAMES.split(), Facts(is_test_only=True))

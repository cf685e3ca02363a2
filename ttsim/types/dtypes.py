"""Data types under ttnn's names; each stands for a data format of the machine."""

from device.cores import PlainEnum
from device.errors import ArgumentError
from device.numbers.formats import (
    BFLOAT4_B,
    BFLOAT8_B,
    BFLOAT16,
    FLOAT32,
    INT8,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    DataFormat,
)


class DataType(PlainEnum):
    """What the elements of a tensor are; the numbers are ttnn's."""

    BFLOAT16 = 0
    FLOAT32 = 1
    UINT32 = 2
    BFLOAT8_B = 3
    BFLOAT4_B = 4
    UINT8 = 5
    UINT16 = 6
    INT32 = 7
    INT8 = 9

    @property
    def format(self) -> DataFormat:
        """The data format of the machine."""
        return _FORMATS[self.name]

    @classmethod
    def of(cls, data_format: DataFormat) -> "DataType":
        """The data type of a format; raises ArgumentError for a format that ttnn does not have."""
        name = data_format.name.upper()
        if name not in cls.__members__:
            raise ArgumentError(f"ttnn has no data type for {data_format}; it has {', '.join(map(str, _FORMATS))}")
        return cls[name]


_FORMATS = {
    one.name.upper(): one for one in (BFLOAT16, FLOAT32, UINT32, BFLOAT8_B, BFLOAT4_B, UINT8, UINT16, INT32, INT8)
}

bfloat16 = DataType.BFLOAT16
float32 = DataType.FLOAT32
uint32 = DataType.UINT32
bfloat8_b = DataType.BFLOAT8_B
bfloat4_b = DataType.BFLOAT4_B
uint8 = DataType.UINT8
uint16 = DataType.UINT16
int32 = DataType.INT32
int8 = DataType.INT8

"""The device log, line by line."""

from ttsim.report.export.profiler import LOG_COLUMNS, device_log


def test_every_core_has_a_zone_of_each_operation(record):
    head, columns, *lines = device_log(record).splitlines()
    assert head == "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64"
    assert columns == LOG_COLUMNS
    assert len(lines) == 2 * sum(one.core_count for one in record.cycles.operations)
    assert {line.count(",") for line in (columns, *lines)} == {14}
    one = record.operations[0]
    assert lines[0] == f"0,0,0,BRISC,1,{one.start_cycle},0,1024,,,BRISC-FW,ZONE_START,0,,"
    assert lines[1] == f"0,0,0,BRISC,1,{one.core_ends[0, 0]},0,1024,,,BRISC-FW,ZONE_END,0,,"


def test_names_do_not_come_into_it(record, hostile):
    assert device_log(hostile) == device_log(record)

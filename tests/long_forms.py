"""Which cases of which families of tests belong to the long form alone?

Many cases of one rule differ little, and each costs a second or two of a whole pipeline. ``make test`` runs those that are named
here and that tell most of their family, ``make test-slow`` and the mutants run all. Of a product of what happens, where it is cut and
who reads, as many as :data:`SPREAD` says run, spread over the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import gcd

import pytest

_STEPS = "tests/steps/test_"

STAYS: dict[str, tuple[str, ...]] = {
    f"{_STEPS}altered.py::test_no_ddl_of_the_table_itself_hides_an_exchange": (
        "moved-before",
        "another-ddl-after",
    ),
    f"{_STEPS}altered.py::test_what_leaves_the_definition_alone_or_is_followed_stops_nothing": (
        "CREATE INDEX*",
        "ALTER TABLE ONE ADD*",
    ),
    f"{_STEPS}altered.py::test_a_table_that_was_moved_by_its_own_ddl_goes_on": (
        "all-in-one-window",
    ),
    f"{_STEPS}chunks_over_ddl.py::test_a_snapshot_is_read_to_its_end_over_a_ddl": (
        "rename the key-key",
        "drop-*",
    ),
    f"{_STEPS}chunks_over_ddl.py::test_another_table_under_the_name_is_not_read": ("rowid",),
    f"{_STEPS}conversions.py::test_a_column_without_values_gets_any_type": (
        "any-number-becomes-a-text",
        "a-text-of-a-moment-gets-a-local-zone",
        "a-longer-char",
    ),
    f"{_STEPS}conversions.py::test_a_column_with_values_gets_longer": ("days",),
    f"{_STEPS}conversions.py::test_oracle_refuses_what_would_change_values": ("a-date-of*",),
    f"{_STEPS}key_names.py::test_a_name_that_the_configuration_has_is_a_stop_by_name": (
        "key",
        "mask",
    ),
    f"{_STEPS}key_names.py::test_after_a_long_pause_the_texts_say_the_name": ("between",),
    f"{_STEPS}key_names.py::test_a_key_that_is_made_anew_on_other_columns_stops_the_table": (
        "False-renamed*",
        "True-made*",
    ),
    f"{_STEPS}lobs_and_keys_delta.py::test_lobs_follow_their_rows_through_keys_in_delta": (
        "copy-on-write-of-one-kind",
    ),
    f"{_STEPS}rebuilding.py::test_a_lost_mirror_comes_back": ("removed", "a-gap"),
    "tests/lake/test_late_commits.py::test_a_commit_that_comes_late_is_applied_where_it_belongs": (
        "plain-auto",
        "marked-auto",
    ),
    "tests/invariants/test_rollbacks.py::test_a_lob_transaction_that_windows_cut_at_every_row_is_the_same": (
        "blocks",
    ),
    f"{_STEPS}reselected_lobs.py::test_parts_of_lobs_become_the_values_of_their_commit": (
        "blocks",
    ),
    f"{_STEPS}reselected_lobs.py::test_what_oracle_does_not_tell_stays_a_part": (
        "the-undo-is-gone",
        "another-row-has-its-key",
    ),
    f"{_STEPS}xml.py::test_documents_of_any_size_are_the_same_in_the_mirror": (
        "amount",
        "text",
    ),
    f"{_STEPS}reselected_lobs.py::test_values_of_many_commits_come_with_few_statements": (
        "",
        "in-its-middle",
    ),
    f"{_STEPS}emptied_partitions.py::test_the_rows_of_a_partition_go_with_it": (
        "truncate-the-last-range",
        "drop-a-list",
        "truncate-a-day",
    ),
    f"{_STEPS}emptied_ahead.py::test_the_change_log_ends_what_went_though_a_chunk_was_read_behind_it": (
        "drop-a-range-whole",
        "truncate-a-range-a-part",
        "truncate-the-table-whole",
    ),
    f"{_STEPS}emptied_partitions.py::test_where_nothing_says_which_rows_went_the_table_stops": (
        "hash",
        "masked",
        "exchange",
    ),
    f"{_STEPS}exchanged_partitions.py::test_the_rows_of_an_exchanged_partition_go_and_those_that_came_are_read": (
        "a-range",
        "a-day",
        "the-last-range",
    ),
    f"{_STEPS}exchanged_partitions.py::test_a_process_that_ends_at_any_place_does_nothing_twice": (
        "truncate",
    ),
    f"{_STEPS}wider_columns.py::test_a_policy_may_leave_the_tables_as_they_are": ("resnapshot*",),
    f"{_STEPS}crashes.py::test_a_crash_at_any_commit_of_the_snapshot_path_loses_and_doubles_nothing": (
        "tables.plan_chunks-after",
        "chunks.record_landed-before",
        "chunks.record_applied-before",
        "tables.finish_snapshot-after",
    ),
    f"{_STEPS}chunk_sessions.py::test_a_kill_between_any_two_effects_loses_and_doubles_nothing": (
        "0",
    ),
    f"{_STEPS}deferred_keys.py::test_rows_that_share_a_key_for_a_while": (
        "swap",
        "all-in-one-key",
        "taken-back-in-between",
    ),
    f"{_STEPS}faults.py::test_landing_that_takes_nothing_stops_the_window_and_loses_nothing": (
        "no-room-for-the-first-byte",
        "no-room-for-the-manifest",
    ),
    f"{_STEPS}faults.py::test_a_connection_that_is_lost_at_any_fetch_of_the_redo_loses_nothing": (
        "1",
        "4",
    ),
    f"{_STEPS}faults.py::test_a_clock_that_steps_changes_no_order": ("-7200",),
    f"{_STEPS}hidden_rows.py::test_a_table_with_a_policy_is_refused_until_the_capture_user_is_exempt": (
        "redaction",
    ),
    f"{_STEPS}hidden_rows.py::test_a_policy_that_comes_before_a_chunk_is_read_keeps_it_out_of_landing": (
        "access",
    ),
    f"{_STEPS}hidden_rows.py::test_a_policy_that_comes_or_goes_while_a_chunk_is_read_is_noticed": (
        "comes-redaction",
        "goes-access",
    ),
    f"{_STEPS}hidden_rows.py::test_windows_go_on_under_a_policy_and_what_is_compared_is_not": (
        "access",
    ),
    f"{_STEPS}row_id_lobs.py::test_rows_with_lobs_have_the_rowids_that_oracle_gave_them": (
        "blocks",
    ),
    f"{_STEPS}row_id_lobs.py::test_a_lob_that_is_left_out_is_nowhere": ("blocks",),
    f"{_STEPS}row_id_lobs.py::test_a_statement_of_a_lob_that_is_left_out_is_taken_back_alone": (
        "blocks",
    ),
    f"{_STEPS}lobs.py::test_a_statement_of_a_lob_that_is_left_out_is_not_taken_for_another": (
        "*every-lob*",
    ),
    f"{_STEPS}masks.py::test_what_cannot_have_a_mask_is_refused": (
        "from the beginning-*",
        "later-masks0-*",
    ),
    f"{_STEPS}partitions.py::test_ddl_that_leaves_the_rows_is_followed": (
        "move",
        "split-and-merge",
    ),
    f"{_STEPS}partitions.py::test_a_table_whose_rows_go_without_redo_stops_with_all_rows_before": (
        "truncate",
        "exchange",
    ),
    f"{_STEPS}policies.py::test_a_table_comes_back_by_itself": ("truncated", "another-key"),
    f"{_STEPS}quarantine.py::test_a_whole_change_needs_nothing_of_what_is_in_quarantine": (
        "an-update-then-an-update",
        "a-delete-then-an-insert",
    ),
    f"{_STEPS}rebuilding.py::test_a_rebuild_that_was_cut_short_goes_on": (
        "delete_missing_keys",
        "apply_window",
    ),
    f"{_STEPS}recapture.py::test_windows_that_are_needed_are_read_again": ("lost3",),
    f"{_STEPS}recapture.py::test_what_holds_rows_of_an_open_transaction_is_needed": ("lost2",),
    f"{_STEPS}recapture.py::test_a_window_right_behind_idle_ones_that_are_forgotten_is_read_again": (
        "lost",
    ),
    f"{_STEPS}replaced_rows.py::test_an_exchange_is_noticed": (
        "past-is-shown-before-the-first-window",
        "past-is-shown-behind-a-truncate-that-is-settled",
        "past-is-shown-in-the-window-behind-a-move",
        "past-is-shown-twice",
    ),
    f"{_STEPS}replaced_rows.py::test_ddl_of_the_child_hides_no_truncate_of_its_parent": (
        "past-is-shown-behind-its-own-truncate",
        "past-is-shown-before-the-first-window",
    ),
    f"{_STEPS}replaced_rows.py::test_partitions_that_its_own_ddl_changes_stop_no_table": (
        "past-is-shown-alone-*SPLIT*",
        "past-is-shown-beside-others-*TRUNCATE*",
    ),
    f"{_STEPS}replaced_rows.py::test_rows_that_go_with_those_of_a_parent_stop_their_table": (
        "past-is-shown-partitioned-child",
    ),
    f"{_STEPS}row_ids.py::test_another_identity_asks_for_new_delta_tables": (
        "all-columns-logged-a-key",
    ),
    f"{_STEPS}row_ids.py::test_partitions_whose_rows_move_take_the_table_out": (
        "all-columns-logged-move-by-data-objects-alone",
        "all-columns-logged-merge-by-its-text",
    ),
    f"{_STEPS}row_ids.py::test_equal_rows_are_rows_of_their_own": ("*",),
    f"{_STEPS}row_ids.py::test_a_row_is_known_although_the_redo_names_changed_columns_alone": (
        "*",
    ),
    f"{_STEPS}row_ids.py::test_transactions_over_windows_and_kills_are_applied_once": (
        "minimal-logging",
    ),
    f"{_STEPS}row_ids.py::test_what_a_transaction_takes_back_is_not_there": ("minimal-logging",),
    f"{_STEPS}row_ids.py::*": ("all-columns-logged*",),
    f"{_STEPS}state_rebuild.py::test_a_store_restored_from_yesterday_stops_the_next_run_and_one_command_mends_it": (
        "a-window",
        "a-captured-window",
        "a-snapshot",
    ),
    f"{_STEPS}state_rebuild.py::test_a_snapshot_that_was_half_done_goes_on": ("1", "4"),
    "tests/capture/test_schedules.py::test_a_broken_rule_is_seen": (
        "a cursor by SCN",
        "everything is new",
        "given up before it was mined past",
        "late commits dropped",
        "no ROLLBACK row believed",
        "partial XIDs left as they are",
        "private threads left out",
    ),
    "tests/capture/test_schedules.py::test_every_row_is_read_once_and_every_transaction_is_whole": (
        "files-*-online",
        "scn_range-*-online",
    ),
    "tests/explain/test_explain.py::test_a_damaged_row_is_named_and_hides_no_other": ("csv-*",),
    "tests/explain/test_explain.py::test_other_forms_say_the_same": (
        "csv-*",
        "*-hex digits in lower case",
    ),
    "tests/stage/test_history.py::test_the_keys_of_a_window_are_what_they_were_at_any_later_position": (
        "0",
    ),
    "tests/stage/test_reducing.py::test_the_sql_form_refuses_the_same": (
        "a-new-row-of-unknown-address-before-a-delete",
        "two-rows-at-the-end",
    ),
    "tests/stage/test_reducing.py::test_a_window_leaves_what_the_table_holds": ("0", "50"),
    f"{_STEPS}truncates.py::test_a_truncate_empties_the_mirror_where_it_stands": (
        "inside-a-window",
        "twice",
    ),
    f"{_STEPS}truncates.py::test_a_process_that_ends_around_a_truncate_is_gone_on_with": (
        "truncate",
    ),
}
"""Families by the id of their test, and the cases that stay in the normal form. The first entry that fits decides."""

SPREAD: dict[str, int] = {
    "tests/capture/test_log_writes.py::*": 10,
    "tests/delta/test_histories.py::*": 2,
    "tests/lake/test_by_key.py::test_a_key_with_many_changes_keeps_what_can_count": 3,
    "tests/lake/test_history_table.py::*": 2,
    "tests/oracle_embedded/engine/test_repeated_values.py::*": 6,
    f"{_STEPS}backlog.py::test_a_table_has_all_windows_up_to_the_ddl_that_came_later": 3,
    f"{_STEPS}converters.py::test_a_wrong_class_stops_its_table_with_one_error": 3,
    f"{_STEPS}kinds_of_tables.py::test_one_that_is_named_is_refused_for_what_it_is": 3,
    f"{_STEPS}chunks_over_ddl.py::test_a_chunk_behind_a_ddl_that_no_window_has_waits_for_it": 2,
    f"{_STEPS}clustered_tables.py::test_generated_transactions": 1,
    f"{_STEPS}ddl_stories.py::test_a_table*": 2,
    f"{_STEPS}column_identity.py::test_a_*": 2,
    f"{_STEPS}column_patterns.py::test_*the_rule": 1,
    f"{_STEPS}column_patterns.py::test_a_captured_column_that_gets_such_a_name_ends_the_stream": 1,
    f"{_STEPS}configuration_order.py::test_a_column_is_named_before_it_is_there": 2,
    f"{_STEPS}configuration_order.py::test_a_ddl_of_an_excluded_column_stops_nothing": 3,
    f"{_STEPS}configuration_order.py::test_a_ddl_that_waits_is_followed_under_a_configuration_that_came_later": 3,
    f"{_STEPS}ddl_positions.py::test_a_table_follows_or_stops_with_its_reason": 4,
    f"{_STEPS}deferred_keys.py::test_a_key_that_oracle_does_not_keep_any_more_stops_the_table": 1,
    f"{_STEPS}deferred_keys.py::test_of_a_table_with_lobs_a_shared_key_stops_that_table_alone": 1,
    f"{_STEPS}dictionaries.py::test_the_same_changes_land_with_every_dictionary": 1,
    f"{_STEPS}fates.py::test_a_*_for_which_spark_has_not_enough_memory_stops*": 1,
    f"{_STEPS}fencing.py::test_who_stood_still_changes_nothing": 5,
    f"{_STEPS}foreign_changes.py::test_rows_that_were_put_in_the_place_of_all_stop_the_table": 3,
    f"{_STEPS}foreign_changes.py::test_what_harms_nothing_of_a_table": 3,
    f"{_STEPS}foreign_changes.py::*": 1,
    f"{_STEPS}foreign_operations.py::test_what_follows_an_operation_of_others": 6,
    f"{_STEPS}gap.py::test_each_way_out_that_is_documented_works_as_typed": 2,
    f"{_STEPS}invalid_text.py::*": 2,
    f"{_STEPS}lob_units.py::*": 3,
    f"{_STEPS}lobs.py::test_lobs_that_were_written_before_a_ddl_are_whole": 3,
    f"{_STEPS}lobs.py::*": 1,
    f"{_STEPS}lobs_and_keys.py::test_a_lob_that_is_written_between_changes_of_key_is_kept": 4,
    f"{_STEPS}lobs_and_keys.py::test_rows_keep_what_they_hold_on_any_walk_through_keys": 1,
    f"{_STEPS}local_times.py::*": 2,
    f"{_STEPS}long_pause.py::*": 2,
    f"{_STEPS}mining_faults.py::test_a_call_of_a_mining_session_that_fails_loses_nothing": 4,
    f"{_STEPS}mining_faults.py::test_a_chunk_whose_fetch_ends_in_the_middle_is_read_again": 2,
    f"{_STEPS}pdbs.py::*": 1,
    f"{_STEPS}recapture.py::*": 1,
    f"{_STEPS}recapture_late.py::*": 1,
    f"{_STEPS}recycle_bin.py::*": 1,
    f"{_STEPS}renames.py::*": 1,
    f"{_STEPS}reselected_lobs.py::*": 1,
    f"{_STEPS}rolled_back_lobs.py::test_a_statement_with_lobs_that_is_taken_back_is_not_applied": 3,
    f"{_STEPS}row_ids_delta.py::*": 1,
    f"{_STEPS}s3_gone.py::*": 1,
    f"{_STEPS}two_actors.py::test_an_actor_that_is_suspended_at_any_step_goes_on_behind_the_other": 3,
    f"{_STEPS}type_parity.py::*": 1,
    f"{_STEPS}watermarks.py::test_a_chunk_that_met_a_ddl_is_read_again": 3,
    f"{_STEPS}watermarks.py::test_changes_around_the_moment_of_a_chunk_count_once": 2,
    f"{_STEPS}watermarks.py::test_a_chunk_that_oracle_refuses_for_a_ddl_is_read_again": 2,
    f"{_STEPS}ways_out.py::test_the_way_out_of_a_fault_of_delta_tables_works_as_typed": 2,
    f"{_STEPS}ways_out.py::test_the_way_out_that_is_printed_works_as_typed": 4,
}
"""Families that are products, and how many of their cases run in the normal form. The first entry that fits decides."""


def mark_long_forms(items: Iterable[pytest.Item]) -> None:
    """Give ``slow`` to the cases that do not stay.

    Raises:
        pytest.UsageError: Of a family that was collected as a whole, no case stays, or one that is named is not there.
    """
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        test, _, case = item.nodeid.partition("[")
        if case and not item.get_closest_marker("slow"):
            found.setdefault(test, []).append(item)
    for test, cases in found.items():
        for place, item in enumerate(_long(test, cases)):
            item.add_marker(pytest.mark.slow)
            if place + 1 == len(cases) > 1:
                raise pytest.UsageError(f"no case of {test} stays: see tests/long_forms.py")


def _long(test: str, cases: list[pytest.Item]) -> list[pytest.Item]:
    """The cases of a family that belong to the long form alone."""
    family = next((name for name in STAYS if fnmatchcase(test, name)), None)
    if family is not None:
        return [one for one in cases if not _stays(family, one.nodeid.partition("[")[2][:-1])]
    kept = next((number for name, number in SPREAD.items() if fnmatchcase(test, name)), len(cases))
    return [one for at, one in enumerate(cases) if at not in spread(len(cases), kept)]


def spread(number: int, kept: int) -> set[int]:
    """Which of so many cases stay: the first one, and others in steps that share no factor with their number, so that no value of a
    product is met by all of them or by none."""
    step = next((one for one in range(round(number * 0.618), number) if gcd(one, number) == 1), 1)
    return {at * step % number for at in range(min(kept, number))}


def _stays(family: str, case: str) -> bool:
    return any(fnmatchcase(case, pattern) for pattern in STAYS[family])

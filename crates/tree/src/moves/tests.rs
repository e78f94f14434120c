//! Tests of moves.

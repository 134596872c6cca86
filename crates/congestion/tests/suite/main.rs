//! The controllers from outside, through the public interface alone.

mod actions;
mod arms;
mod duels;
mod path;
mod properties;
mod response;
mod script;
mod spec_text;
mod tables;

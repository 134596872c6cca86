mod any;
mod formulas;
mod pieces;

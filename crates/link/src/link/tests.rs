mod any;
mod formulas;
mod pieces;
mod series;

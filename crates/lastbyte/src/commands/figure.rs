//! `--figure WIDTH`: charts for papers and slides, the same of all commands that draw.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use clap::Args;
use lastbyte_report::figure::{self, Figure, Print, Width};

use crate::{
    failure::Failure,
    files,
    terminal::{counted, save, wrote_as},
};

/// Options for figures.
#[derive(Debug, Default, Args)]
pub(crate) struct FigureArguments {
    /// Draw for print at this width, as PDF and SVG: 3.33in, 85mm, 8.5cm, 240pt
    #[arg(long, value_name = "WIDTH", help_heading = "Figure")]
    figure: Option<Width>,
    /// Write the points that --figure draws to this CSV file
    #[arg(
        long = "data",
        alias = "figure-data",
        value_name = "FILE.csv",
        requires = "figure",
        help_heading = "Figure"
    )]
    figure_data: Option<PathBuf>,
}

/// What a path of a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pdf,
    Svg,
    Folder,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        match path.extension().and_then(OsStr::to_str) {
            _ if path.is_dir() => Some(Self::Folder),
            Some("pdf") => Some(Self::Pdf),
            Some("svg") => Some(Self::Svg),
            Some(_) => None,
            None => Some(Self::Folder),
        }
    }
}

impl FigureArguments {
    pub(crate) const fn is_given(&self) -> bool {
        self.figure.is_some()
    }

    /// Checks the paths of `option`. Returns whether they are those of figures.
    pub(crate) fn check(&self, option: &str, out: &[PathBuf]) -> Result<bool, Failure> {
        if self.figure.is_none() {
            return match out.iter().find(|path| Kind::of(path) == Some(Kind::Pdf)) {
                Some(path) => Err(Failure::Usage(format!(
                    "{option}: `{}` is a figure for print (expected --figure WIDTH too, such as --figure 3.33in)",
                    path.display()
                ))),
                None => Ok(false),
            };
        }
        for path in out {
            match Kind::of(path) {
                Some(Kind::Folder) => files::check_folder_of(path)?,
                Some(_) => files::check_appendable(path)?,
                None => {
                    return Err(Failure::Usage(format!(
                        "{option}: `{}` is not a figure (expected a name that ends in .pdf or .svg, or a directory)",
                        path.display()
                    )));
                }
            }
        }
        if let Some(data) = &self.figure_data {
            if data.extension().and_then(OsStr::to_str) != Some("csv") {
                return Err(Failure::Usage(format!(
                    "--data: unknown format `{}` (expected a name that ends in .csv)",
                    data.display()
                )));
            }
            files::check_appendable(data)?;
        }
        Ok(true)
    }

    /// Writes figures, if they are wanted: to a directory all of them as PDF and SVG, to a file the first.
    pub(crate) fn write(&self, out: &[PathBuf], figures: &[Figure]) -> Result<(), Failure> {
        let Some(width) = self.figure else {
            return Ok(());
        };
        if figures.is_empty() {
            return Err(Failure::Run(
                "no figure: there is nothing to draw".to_owned(),
            ));
        }
        let is_folder = |path: &PathBuf| Kind::of(path) == Some(Kind::Folder);
        let drawn = if out.iter().any(is_folder) {
            figures
        } else {
            &figures[..1]
        };
        let prints = drawn.iter().map(|figure| {
            let print = figure.print(width);
            print.map_err(|error| Failure::Run(format!("chart `{}`: {error}", figure.name)))
        });
        let prints: Vec<Print> = prints.collect::<Result<_, _>>()?;
        for path in out {
            if is_folder(path) {
                files::create_folder(path)?;
                let mut names = files::Names::default();
                for (figure, print) in drawn.iter().zip(&prints) {
                    let name = names.unique(&figure.name);
                    write(&path.join(format!("{name}.pdf")), print)?;
                    write(&path.join(format!("{name}.svg")), print)?;
                }
                wrote_as(
                    path,
                    &format!("{} as PDF and SVG", counted(drawn.len() as u64, "chart")),
                );
            } else {
                write(path, &prints[0])?;
                let what = match figures.len() {
                    1 => String::new(),
                    all => format!(
                        "`{}`, one of {}; a directory gets all",
                        figures[0].name,
                        counted(all as u64, "chart")
                    ),
                };
                wrote_as(path, &what);
            }
        }
        if let Some(data) = &self.figure_data {
            save(data, figure::csv(drawn).as_bytes())?;
        }
        Ok(())
    }
}

/// Writes a figure in the format of a file's name.
fn write(path: &Path, print: &Print) -> Result<(), Failure> {
    match Kind::of(path) {
        Some(Kind::Pdf) => files::write(path, &print.pdf()),
        _ => files::write(path, print.svg().as_bytes()),
    }
}

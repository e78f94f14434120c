//! `man`: manual pages from the definitions of the command line, one for each command.

use crate::args::Cli;
use crate::args::output::ManArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::units::counted;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

/// The section of the pages: commands.
const SECTION: &str = "1";

/// A page: its name, as `shingle-scan`, and its text.
struct Page {
    name: String,
    text: Vec<u8>,
}

/// `shingle man`.
pub fn man(context: &mut Context, args: &ManArgs) -> Outcome {
    let pages = pages()?;
    let Some(directory) = &args.directory else {
        return Ok(context.out.write_all(&pages[0].text)?);
    };
    std::fs::create_dir_all(directory).map_err(|error| Failure::cannot_write(directory, &error))?;
    for page in &pages {
        let path = directory.join(format!("{}.{SECTION}", page.name));
        std::fs::write(&path, &page.text).map_err(|error| Failure::cannot_write(&path, &error))?;
    }
    let written = counted(pages.len() as u64, "page");
    context.remark(&format!("{written} in {}", directory.display()));
    Ok(())
}

/// The page of the command first, then those of its commands.
fn pages() -> Outcome<Vec<Page>> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<Page>) -> Outcome {
    pages.push(page(command)?);
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| add(command, pages))
}

fn page(command: &Command) -> Outcome<Page> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
    let source = concat!("shingle ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).section(SECTION).source(source).manual("Shingle");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut text = once(&String::from_utf8_lossy(&text)).into_bytes();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    text.extend_from_slice(sections(&after).as_bytes());
    if name != "shingle" {
        text.extend_from_slice(b".SH \"SEE ALSO\"\n\\fBshingle\\fR(1)\n");
    }
    Ok(Page { name, text })
}

/// What the generator writes before each section; once is enough.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The text of all sections with one preamble.
fn once(text: &str) -> String {
    format!("{PREAMBLE}{}", text.replace(PREAMBLE, ""))
}

/// The text below a command's help as sections: a line with a colon begins one, and its lines
/// stand as they are.
fn sections(text: &str) -> String {
    let mut roff = String::new();
    let mut is_open = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            Some(title) => {
                roff.push_str(if is_open { ".fi\n" } else { "" });
                roff.push_str(&format!(".SH \"{}\"\n.nf\n", title.to_uppercase()));
                is_open = true;
            }
            None => {
                roff.push_str(&literal(line.strip_prefix("  ").unwrap_or(line)));
                roff.push('\n');
            }
        }
    }
    roff.push_str(if is_open { ".fi\n" } else { "" });
    roff
}

/// A line that the formatter prints as it is.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_become_a_section_with_lines_as_they_are() {
        let roff = sections("Examples:\n  shingle scan 'a\\n'\n  .x\n\nExit codes:\n  0  done");
        let expected = ".SH \"EXAMPLES\"\n.nf\nshingle scan \\(aqa\\en\\(aq\n\\&.x\n.fi\n\
                        .SH \"EXIT CODES\"\n.nf\n0  done\n.fi\n";
        assert_eq!(roff, expected);
        assert_eq!(sections(""), "");
    }

    #[test]
    fn there_is_a_page_for_each_command_that_is_shown() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|page| &page.name[..]).collect();
        assert_eq!(names[0], "shingle");
        for name in ["shingle-scan", "shingle-keyspace-create", "shingle-lab-run", "shingle-man"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("crash-writer")), "{names:?}");
    }
}

//! The page itself: structure, style sheet, escaping.
//!
//! `Report` → HTML text. The style sheet sets one measure for text, a wider one for figures, tabular
//! figures in tables, and takes its colours from variables that the dark scheme replaces.
//!
//! Figures keep their white ground in the dark: their colours were chosen against white.

use std::fmt::Write;

use super::{Block, Figure, MetricTable, Report};

const STYLE: &str = "
:root{color-scheme:light dark;--ground:#fff;--ink:#1d1f23;--muted:#62666d;--line:#dcdfe4;--tint:#eaf3fa;--link:#0072b2}
@media(prefers-color-scheme:dark){:root{--ground:#16181c;--ink:#e6e7ea;--muted:#a0a5ad;--line:#34383f;--tint:#1b2f40;--link:#56b4e9}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:54rem;margin:0 auto;padding:3rem 1.25rem 4rem}
h1{font-size:2rem;line-height:1.2;letter-spacing:-.015em;margin:0 0 .5rem}
h2{font-size:1.25rem;margin:3rem 0 1rem;padding-top:1rem;border-top:1px solid var(--line)}
p{max-width:42rem;margin:.75rem 0}
.summary{font-size:1.1rem;color:var(--muted)}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.15rem 2rem;margin:1.5rem 0 0;font-size:.9rem}
dl div{display:flex;justify-content:space-between;gap:1rem;border-bottom:1px solid var(--line);padding:.25rem 0}
dt{color:var(--muted)}dd{margin:0;text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:1.25rem 0}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
caption,summary{text-align:left;font-weight:600;padding:.25rem 0 .5rem}
summary{cursor:pointer;color:var(--link)}
details caption{display:none}
th,td{padding:.4rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line);vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:.4rem}
thead th{font-weight:600}thead small{display:block;font-weight:400;color:var(--muted)}
tbody th{font-weight:400}tr.own{background:var(--tint)}tr.own th{font-weight:600}
td.best{font-weight:700}td.none{color:var(--muted)}
figure{margin:1.5rem 0}
figure svg{display:block;width:100%;height:auto;background:#fff;border:1px solid var(--line);border-radius:8px}
figcaption{font-size:.9rem;color:var(--muted);margin-top:.5rem;max-width:42rem}
@media print{body{font-size:11pt}main{max-width:none;padding:0}figure,table{break-inside:avoid}}
";

impl Report {
    /// The page as one self-contained HTML document.
    #[must_use]
    pub fn html(&self) -> String {
        let mut page = String::new();
        let title = escaped(&self.title);
        page += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
        page += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n";
        // Writing to a String cannot fail.
        let _ = writeln!(page, "<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>");
        let _ = writeln!(page, "<h1>{title}</h1>\n<p class=\"summary\">{}</p>", escaped(&self.summary));
        if !self.settings.is_empty() {
            page += "<dl>\n";
            for (name, value) in &self.settings {
                let _ = writeln!(page, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value));
            }
            page += "</dl>\n";
        }
        for section in &self.sections {
            let _ = writeln!(page, "<section>\n<h2>{}</h2>", escaped(&section.title));
            for block in &section.blocks {
                match block {
                    Block::Text(text) => {
                        let _ = writeln!(page, "<p>{}</p>", escaped(text));
                    }
                    Block::Table(table) => page += &table_html(table),
                    Block::Folded(table) => {
                        let caption = escaped(&table.caption);
                        let inner = table_html(table);
                        let _ = writeln!(page, "<details>\n<summary>{caption}</summary>\n{inner}</details>");
                    }
                    Block::Figure(figure) => page += &figure_html(figure),
                }
            }
            page += "</section>\n";
        }
        page + "</main>\n</body>\n</html>\n"
    }
}

fn figure_html(figure: &Figure) -> String {
    let caption = escaped(&figure.caption);
    let svg = figure.svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{caption}\" "), 1);
    format!("<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n")
}

fn table_html(table: &MetricTable) -> String {
    let mut html = format!(
        "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr><th></th>",
        escaped(&table.caption)
    );
    for column in &table.columns {
        let _ = write!(html, "<th>{}<small>{}</small></th>", escaped(&column.name), escaped(&column.note));
    }
    html += "</tr></thead>\n<tbody>\n";
    let best = table.best();
    for row in &table.rows {
        html += if row.own { "<tr class=\"own\">" } else { "<tr>" };
        let _ = write!(html, "<th scope=\"row\">{}</th>", escaped(&row.name));
        for (c, best) in best.iter().enumerate() {
            match row.cells.get(c).copied().flatten() {
                // A value that prints like the best is as good as the best.
                Some(cell) => {
                    let rounded = |x: f64| format!("{x:.*}", table.digits);
                    let is_best = best.is_some_and(|b| rounded(b) == rounded(cell.mean));
                    let class = if is_best { " class=\"best\"" } else { "" };
                    let _ = write!(html, "<td{class}>{}</td>", cell.show(table.digits));
                }
                None => html += "<td class=\"none\">–</td>",
            }
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

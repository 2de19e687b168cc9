"""The look of a report: one style sheet, for screens, telephones and paper."""

from __future__ import annotations

PAGE_RULES = "/* page */"  # before it: what the markup needs anywhere; after it: the page itself
CSS = """
.card{border:1px solid #c9ced6;border-left:6px solid #0072B2;border-radius:4px;padding:.6rem 1rem;
margin:1rem 0;max-width:50rem}
.card.no_better_than_chance{border-left-color:#009E73}
.card.undefined,.card.chance_unknown{border-left-color:#5f6368;border-left-style:dashed}
.card h3{margin:.2rem 0}
.card p{margin:.4rem 0;max-width:46rem}
.card .figure{font-size:2rem;font-weight:600;line-height:1.2}
.card .figure span{font-size:1.05rem;font-weight:400;white-space:nowrap}
.note{color:#4a4f57;font-size:.875rem;max-width:46rem;margin:.5rem 0}
.scroll{overflow-x:auto;margin:1rem 0}
.scroll table{border-collapse:collapse;font-size:.875rem;line-height:1.35;width:auto}
.scroll caption{text-align:left;font-weight:600;padding:.2rem 0}
.scroll th,.scroll td{padding:.25rem .6rem;border-bottom:1px solid #dfe2e7;text-align:left;vertical-align:top;
background:none}
.scroll thead th{border-bottom:2px solid #5f6368;vertical-align:bottom}
.scroll tbody th{font-weight:400}
.scroll .l{overflow-wrap:anywhere;min-width:12rem;max-width:26rem}
.scroll .s{white-space:nowrap}
.scroll caption span{display:inline-block;position:sticky;left:0;max-width:min(46rem,88vw)}
details .scroll caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.scroll .n{text-align:right;font-variant-numeric:tabular-nums}
.scroll td.n{white-space:nowrap}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:0 2rem}
.figures.many{display:block;columns:2 24rem;column-gap:2rem;max-width:78rem}
.figures figure{margin:0 0 1.2rem;max-width:38rem;break-inside:avoid}
.figures figcaption{font-size:.875rem;color:#4a4f57}
.figures strong{color:#1b1f24}
.plot{width:100%;height:auto;display:block;overflow:visible}
.plot text{font-family:inherit!important}
/* page */
*{box-sizing:border-box}
html{color-scheme:light;-webkit-text-size-adjust:100%}
body{font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
color:#1b1f24;background:#fff;margin:0 auto;padding:1rem clamp(1rem,4vw,3rem) 3rem;max-width:80rem}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #c9ced6;padding-bottom:.2rem}
h3{font-size:1.05rem;margin:1.2rem 0 .4rem;overflow-wrap:anywhere}
p,li,dd{overflow-wrap:anywhere}
main p,main ul{max-width:46rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;padding:0;margin:.6rem 0}
a{color:#00548a}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid #E69F00;outline-offset:2px}
.warnings li{margin:.3rem 0}
details{margin:.8rem 0}
summary{cursor:pointer;font-weight:600;color:#00548a;padding:.2rem 0}
dl{display:grid;grid-template-columns:minmax(8rem,auto) 1fr;gap:.3rem 1rem;max-width:60rem;font-size:.9375rem}
dt{font-weight:600}
dd{margin:0}
@media (max-width:36rem){
dl{grid-template-columns:1fr;gap:0}
dd{margin:0 0 .6rem}
.card .figure span{display:block}
.scroll thead th{white-space:nowrap}
}
@page{size:A4;margin:16mm 14mm}
@media print{
body{font-size:9.5pt;padding:0;max-width:none}
nav{display:none}
h1{font-size:16pt}h2{font-size:12.5pt;break-after:avoid}h3,caption{break-after:avoid}
.card,figure,tr,.short{break-inside:avoid}
thead{display:table-header-group}
.figures{grid-template-columns:1fr 1fr;gap:0 5mm}
.figures.many{columns:2;column-gap:5mm}
.scroll{overflow:visible}
.scroll table,.note,.figures figcaption{font-size:7.5pt}
.scroll th,.scroll td{padding:1pt 3pt}
.scroll .l{min-width:0;max-width:none}
dl,li,main p{font-size:9pt}
summary{list-style:none;color:inherit}
details::details-content{content-visibility:visible;block-size:auto;opacity:1}
}
"""

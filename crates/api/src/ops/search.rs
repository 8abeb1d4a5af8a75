//! Search.

use super::failure::Failure;
use super::files::{at, vault_path};
use super::items;
use super::{Ask, Reply, parse};
use crate::wire::{
    Find, FindReport, FoundItem, Grep, GrepFileItem, GrepLineItem, GrepMatchItem, GrepOutput,
    GrepReport, Search, SearchHit, SearchReport, to_text,
};
use avfs_runtime::{
    FindRequest, FoundPath, GrepDetail, GrepFile, GrepFound, GrepLine, GrepRequest, Select,
    SizeTest, WordHit,
};

pub(crate) fn grep(ask: &Ask, vault: Select, request: Grep) -> Reply<Grep> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let detail = match request.output {
        GrepOutput::Lines => GrepDetail::Lines,
        GrepOutput::Counts => GrepDetail::Counts,
        GrepOutput::Files => GrepDetail::Files,
    };
    let asked = GrepRequest {
        pattern: request.pattern.clone(),
        path,
        ignore_case: request.ignore_case,
        fixed: request.fixed_strings,
        invert: request.invert,
        before: request.before_context,
        after: request.after_context,
        globs: request.globs,
        detail,
        limit: request.limit,
    };
    let found = ask.session.grep(vault, &asked).map_err(at(&asked.path))?;
    Ok(grep_report(request.pattern, found, detail))
}

fn grep_report(pattern: String, found: GrepFound, detail: GrepDetail) -> GrepReport {
    let count = found.files.iter().map(|file| file.count).sum();
    let (mut matches, mut files) = (Vec::new(), Vec::new());
    for file in found.files {
        match detail {
            GrepDetail::Lines => matches.extend(matches_of(file)),
            GrepDetail::Counts | GrepDetail::Files => {
                let (path, path_b64) = items::path(&file.path);
                let count = file.count;
                files.push(GrepFileItem {
                    path,
                    path_b64,
                    count,
                });
            }
        }
    }
    GrepReport {
        pattern,
        count,
        matches,
        files,
        truncated: found.truncated,
        files_searched: found.searched,
        version: found.version,
    }
}

fn matches_of(file: GrepFile) -> impl Iterator<Item = GrepMatchItem> {
    let (path, path_b64) = items::path(&file.path);
    file.matches.into_iter().map(move |found| GrepMatchItem {
        path: path.clone(),
        path_b64: path_b64.clone(),
        line: line(found.line),
        before: found.before.into_iter().map(line).collect(),
        after: found.after.into_iter().map(line).collect(),
    })
}

fn line(found: GrepLine) -> GrepLineItem {
    let (line, line_b64) = to_text(found.bytes);
    GrepLineItem {
        line_number: found.number,
        line,
        line_b64,
    }
}

pub(crate) fn find(ask: &Ask, vault: Select, request: Find) -> Reply<Find> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let mut sizes: Vec<SizeTest> = parse_all(&request.sizes)?;
    sizes.extend(request.min_size.and_then(SizeTest::at_least));
    sizes.extend(request.max_size.map(SizeTest::at_most));
    let asked = FindRequest {
        path,
        name: request.name,
        ignore_case: request.ignore_case,
        kinds: parse_all(&request.types)?,
        sizes,
        ages: parse_all(&request.mtimes)?,
        tags: parse_all(&request.tags)?,
        metadata: parse_all(&request.meta)?,
        depth: request.depth,
        limit: request.limit,
    };
    let found = ask.session.find(vault, &asked).map_err(at(&asked.path))?;
    Ok(FindReport {
        count: found.paths.len(),
        results: found.paths.iter().map(found_item).collect(),
        truncated: found.truncated,
        version: found.version,
    })
}

fn found_item(found: &FoundPath) -> FoundItem {
    let (path, path_b64) = items::path(&found.path);
    let item = items::entry(&found.entry);
    FoundItem {
        path,
        path_b64,
        file_type: item.kind,
        size: item.size,
        mode: item.mode,
        modified: items::time(found.entry.meta.mtime),
    }
}

pub(crate) fn search(ask: &Ask, vault: Select, request: Search) -> Reply<Search> {
    let found = ask
        .session
        .search(vault, &request.query, request.limit, request.rebuild)?;
    let hit = |hit: &WordHit| {
        let (path, path_b64) = items::path(&hit.path);
        SearchHit {
            path,
            path_b64,
            snippet: hit.snippet.clone(),
            rank: hit.rank,
        }
    };
    Ok(SearchReport {
        query: request.query,
        count: found.hits.len(),
        results: found.hits.iter().map(hit).collect(),
        files_indexed: found.files,
        version: found.version,
    })
}

fn parse_all<T>(texts: &[String]) -> Result<Vec<T>, Failure>
where
    T: std::str::FromStr,
    avfs_runtime::Error: From<T::Err>,
{
    texts.iter().map(|text| parse(text)).collect()
}

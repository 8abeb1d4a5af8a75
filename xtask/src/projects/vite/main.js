const parts = await Promise.all([1, 2, 3].map(async (n) => n * n));
document.body.textContent = parts.join(', ');

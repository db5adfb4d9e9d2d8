set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'burst-return-threads.png'
set title 'Threads of the pool over time: return'
set xlabel 'time (s)'
set ylabel 'threads of the pool'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'burst-return-threads-native.dat' using 1:2 with steps linewidth 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'burst-return-threads-classic.dat' using 1:2 with steps linewidth 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'burst-return-threads-worker.dat' using 1:2 with steps linewidth 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'burst-return-threads-fpm.dat' using 1:2 with steps linewidth 2 linecolor rgb '#00865f' title 'nginx + php-fpm'
